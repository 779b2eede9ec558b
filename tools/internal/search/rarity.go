package search

import "math"

// rarity tells how rare each byte is in source code and documentation: eight
// times the binary logarithm of one over its share, counted over 174 MB of Go,
// Python and Perl sources and their documentation.
var rarity = [256]uint8{
	227, 199, 204, 201, 197, 199, 197, 184, 208, 43, 41, 199, 208, 148, 185, 214,
	199, 188, 188, 190, 214, 191, 161, 191, 204, 214, 208, 193, 194, 199, 197, 197,
	21, 80, 53, 72, 76, 84, 81, 63, 53, 53, 66, 79, 46, 61, 50, 49,
	43, 52, 54, 57, 58, 62, 59, 63, 60, 63, 54, 74, 61, 55, 60, 101,
	92, 57, 67, 61, 64, 58, 66, 72, 74, 61, 91, 83, 64, 66, 65, 62,
	64, 87, 61, 58, 59, 71, 69, 78, 76, 79, 89, 67, 70, 67, 103, 56,
	73, 39, 54, 44, 45, 33, 48, 53, 50, 39, 73, 64, 44, 50, 39, 40,
	48, 82, 39, 39, 36, 48, 59, 63, 50, 57, 79, 63, 79, 63, 101, 199,
	115, 124, 121, 126, 132, 129, 131, 128, 123, 132, 132, 139, 134, 139, 137, 127,
	133, 132, 136, 134, 119, 130, 125, 131, 129, 126, 137, 139, 128, 129, 136, 116,
	90, 133, 138, 135, 130, 133, 134, 132, 136, 123, 136, 127, 134, 134, 136, 139,
	135, 131, 132, 133, 134, 134, 132, 104, 119, 124, 132, 134, 128, 132, 130, 138,
	208, 201, 87, 114, 144, 141, 174, 155, 166, 148, 150, 162, 140, 152, 118, 133,
	113, 125, 174, 169, 172, 153, 138, 128, 126, 125, 159, 159, 177, 214, 195, 181,
	119, 129, 105, 126, 143, 135, 132, 139, 140, 148, 151, 159, 158, 166, 201, 142,
	117, 193, 191, 183, 188, 195, 188, 214, 190, 208, 208, 214, 197, 184, 191, 194,
}

// frequency estimates how often per byte one of the literals occurs. Bytes of a
// text depend on one another, so the second rarest counts half.
func frequency(all []literal) float64 {
	sum := 0.0
	for _, l := range all {
		bits := 0.0
		if l.text != "" {
			first, second := rarest(l)
			bits = float64(l.rarity(first))
			if second != first {
				bits += float64(l.rarity(second)) / 2
			}
		}
		sum += math.Exp2(-bits / 8)
	}
	return sum
}

// rarity returns how rare the byte at i is; in either case with fold.
func (l literal) rarity(i int) uint8 {
	c := l.text[i]
	if l.fold && isAlpha(c) {
		return min(rarity[c], rarity[c&^0x20])
	}
	return rarity[c]
}

// rarest returns the places of the two rarest bytes, equal in a text of one.
func rarest(l literal) (first, second int) {
	for i := range len(l.text) {
		if l.rarity(i) > l.rarity(first) {
			first = i
		}
	}
	second = first
	for i := range len(l.text) {
		if i != first && (second == first || l.rarity(i) > l.rarity(second)) {
			second = i
		}
	}
	return first, second
}
