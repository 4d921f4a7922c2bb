package lex

import "sort"

// CharsetOfCollation returns the character set of a collation's id in lower case, or "" for an
// unknown id. An id means the same on every server that has it. Not every server has all of them:
// see [EverywhereCollation].
func CharsetOfCollation(id uint16) string {
	if id > 1024 && id < 2048 { // MariaDB's NOPAD variant of the id minus 1024
		id -= 1024
	}
	i := sort.Search(len(collations), func(i int) bool { return collations[i].last >= id })
	if i == len(collations) || collations[i].first > id {
		return ""
	}
	return collations[i].charset
}

// EverywhereCollation reports whether every server since MySQL 5.6 and MariaDB 10.0 has a
// collation. If a login names an unknown collation, a server uses its own default.
func EverywhereCollation(id uint16) bool {
	return id != 76 && id <= 247 && CharsetOfCollation(id) != ""
}

// collations are those of MySQL 9.7 and MariaDB 11.8, by id.
var collations = []struct {
	first, last uint16
	charset     string
}{
	{1, 1, "big5"},
	{2, 2, "latin2"},
	{3, 3, "dec8"},
	{4, 4, "cp850"},
	{5, 5, "latin1"},
	{6, 6, "hp8"},
	{7, 7, "koi8r"},
	{8, 8, "latin1"},
	{9, 9, "latin2"},
	{10, 10, "swe7"},
	{11, 11, "ascii"},
	{12, 12, "ujis"},
	{13, 13, "sjis"},
	{14, 14, "cp1251"},
	{15, 15, "latin1"},
	{16, 16, "hebrew"},
	{18, 18, "tis620"},
	{19, 19, "euckr"},
	{20, 20, "latin7"},
	{21, 21, "latin2"},
	{22, 22, "koi8u"},
	{23, 23, "cp1251"},
	{24, 24, "gb2312"},
	{25, 25, "greek"},
	{26, 26, "cp1250"},
	{27, 27, "latin2"},
	{28, 28, "gbk"},
	{29, 29, "cp1257"},
	{30, 30, "latin5"},
	{31, 31, "latin1"},
	{32, 32, "armscii8"},
	{33, 33, "utf8mb3"},
	{34, 34, "cp1250"},
	{35, 35, "ucs2"},
	{36, 36, "cp866"},
	{37, 37, "keybcs2"},
	{38, 38, "macce"},
	{39, 39, "macroman"},
	{40, 40, "cp852"},
	{41, 42, "latin7"},
	{43, 43, "macce"},
	{44, 44, "cp1250"},
	{45, 46, "utf8mb4"},
	{47, 49, "latin1"},
	{50, 52, "cp1251"},
	{53, 53, "macroman"},
	{54, 55, "utf16"},
	{56, 56, "utf16le"},
	{57, 57, "cp1256"},
	{58, 59, "cp1257"},
	{60, 61, "utf32"},
	{62, 62, "utf16le"},
	{63, 63, "binary"},
	{64, 64, "armscii8"},
	{65, 65, "ascii"},
	{66, 66, "cp1250"},
	{67, 67, "cp1256"},
	{68, 68, "cp866"},
	{69, 69, "dec8"},
	{70, 70, "greek"},
	{71, 71, "hebrew"},
	{72, 72, "hp8"},
	{73, 73, "keybcs2"},
	{74, 74, "koi8r"},
	{75, 75, "koi8u"},
	{76, 76, "utf8mb3"},
	{77, 77, "latin2"},
	{78, 78, "latin5"},
	{79, 79, "latin7"},
	{80, 80, "cp850"},
	{81, 81, "cp852"},
	{82, 82, "swe7"},
	{83, 83, "utf8mb3"},
	{84, 84, "big5"},
	{85, 85, "euckr"},
	{86, 86, "gb2312"},
	{87, 87, "gbk"},
	{88, 88, "sjis"},
	{89, 89, "tis620"},
	{90, 90, "ucs2"},
	{91, 91, "ujis"},
	{92, 93, "geostd8"},
	{94, 94, "latin1"},
	{95, 96, "cp932"},
	{97, 98, "eucjpms"},
	{99, 99, "cp1250"},
	{101, 124, "utf16"},
	{128, 151, "ucs2"},
	{159, 159, "ucs2"},
	{160, 183, "utf32"},
	{192, 215, "utf8mb3"},
	{223, 223, "utf8mb3"},
	{224, 247, "utf8mb4"},
	{248, 250, "gb18030"},
	{255, 271, "utf8mb4"},
	{273, 275, "utf8mb4"},
	{277, 294, "utf8mb4"},
	{296, 298, "utf8mb4"},
	{300, 300, "utf8mb4"},
	{303, 323, "utf8mb4"},
	{576, 579, "utf8mb3"},
	{608, 611, "utf8mb4"},
	{640, 642, "ucs2"},
	{672, 674, "utf16"},
	{736, 738, "utf32"},
	{2048, 2215, "utf8mb3"},
	{2232, 2247, "utf8mb3"},
	{2304, 2471, "utf8mb4"},
	{2488, 2503, "utf8mb4"},
	{2560, 2727, "ucs2"},
	{2744, 2759, "ucs2"},
	{2816, 2983, "utf16"},
	{3000, 3015, "utf16"},
	{3072, 3239, "utf32"},
	{3256, 3271, "utf32"},
}
