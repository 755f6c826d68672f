// SPDX-License-Identifier: Apache-2.0
// Texts of lists of registers, d0 and so on: M(0) to M(n - 1), the first apart; GET and PUT those of a thread from and to memory at %0.
#pragma once

/* clang-format off */
#define TEN(M, t) M(t##0) M(t##1) M(t##2) M(t##3) M(t##4) M(t##5) M(t##6) M(t##7) M(t##8) M(t##9)
#define TO_1(F, M) F(0)
#define TO_2(F, M) F(0) M(1)
#define TO_4(F, M) F(0) M(1) M(2) M(3)
#define TO_8(F, M) TO_4(F, M) M(4) M(5) M(6) M(7)
#define TO_16(F, M) TO_8(F, M) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
#define TO_32(F, M) TO_8(F, M) M(8) M(9) TEN(M, 1) TEN(M, 2) M(30) M(31)
#define TO_64(F, M) TO_8(F, M) M(8) M(9) TEN(M, 1) TEN(M, 2) TEN(M, 3) TEN(M, 4) TEN(M, 5) M(60) M(61) M(62) M(63)
#define TO_128(F, M) TO_8(F, M) M(8) M(9) TEN(M, 1) TEN(M, 2) TEN(M, 3) TEN(M, 4) TEN(M, 5) TEN(M, 6) TEN(M, 7) TEN(M, 8) TEN(M, 9) TEN(M, 10) TEN(M, 11) \
    M(120) M(121) M(122) M(123) M(124) M(125) M(126) M(127)
#define FIRST(i) "d" #i
#define MORE(i) ",d" #i
#define GET(i) "ld.global.b32 d" #i ",[%0+4*" #i "];"
#define PUT(i) "st.global.b32 [%0+4*" #i "],d" #i ";"
/* clang-format on */
