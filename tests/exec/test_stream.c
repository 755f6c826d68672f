#include "rig.h"
int main(void)
{
    return 0;
}
