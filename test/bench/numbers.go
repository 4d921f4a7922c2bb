package main

import "fmt"

// numberSet remembers the numbers that a counter gave in the whole run. It is a bitmap in pages,
// since the numbers are dense. The zero value is empty.
type numberSet struct {
	pages map[uint64]*[1024]uint64
}

// add returns false if v was there already.
func (s *numberSet) add(v uint64) bool {
	if s.pages == nil {
		s.pages = map[uint64]*[1024]uint64{}
	}
	page := s.pages[v>>16]
	if page == nil {
		page = new([1024]uint64)
		s.pages[v>>16] = page
	}
	word, bit := v>>6&1023, uint64(1)<<(v&63)
	if page[word]&bit != 0 {
		return false
	}
	page[word] |= bit
	return true
}

// addAll adds the numbers of each connection, in order. It refuses 0, a number that came before,
// and numbers that do not rise on a connection.
func (s *numberSet) addAll(perConnection [][]uint64) error {
	for i, numbers := range perConnection {
		last := uint64(0)
		for _, v := range numbers {
			if v <= last {
				return fmt.Errorf("connection %d was given %d after %d", i, v, last)
			}
			if !s.add(v) {
				return fmt.Errorf("number %d was given twice", v)
			}
			last = v
		}
	}
	return nil
}
