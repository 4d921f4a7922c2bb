//go:build race

package clients_test

// raceDetector says whether the tests run with it; the proxy is built in the same way.
const raceDetector = true
