/* SPDX-License-Identifier: Apache-2.0
 * The rows of abi.def as initialisers; included twice, after each source's declarations. */
#define VALUE(constant)      { #constant, (long long)(constant) },
#define SIZE(type)           { "sizeof " #type, (long long)sizeof(type) },
#define OFFSET(type, member) { #type "." #member, (long long)offsetof(type, member) },
#include "abi.def"
#undef VALUE
#undef SIZE
#undef OFFSET
