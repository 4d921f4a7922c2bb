//go:build race

package clients_test

// raceDetector tells whether the tests run with it; the proxy is built alike.
const raceDetector = true
