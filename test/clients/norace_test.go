//go:build !race

package clients_test

const raceDetector = false
