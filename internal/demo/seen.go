package demo

import "sync"

// seen remembers keys with a bit for each, in blocks of 2^16. The keys of an hour take a few
// hundred kilobytes.
type seen struct {
	mu     sync.Mutex
	blocks map[uint64]*[1024]uint64
	count  uint64
	twice  uint64
}

// add remembers a key. It reports whether the key is new.
func (s *seen) add(key uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.blocks == nil {
		s.blocks = make(map[uint64]*[1024]uint64)
	}
	block := s.blocks[key>>16]
	if block == nil {
		block = new([1024]uint64)
		s.blocks[key>>16] = block
	}
	word, bit := &block[key>>6&1023], uint64(1)<<(key&63)
	if *word&bit != 0 {
		s.twice++
		return false
	}
	*word |= bit
	return true
}

// counts returns the number of keys, and how many of them had come before.
func (s *seen) counts() (all, twice uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, s.twice
}

// repeated counts a key that a table had already.
func (s *seen) repeated() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twice++
}
