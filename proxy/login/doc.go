// Package login keeps those who log in apart: how many do so at the same time, and for how long an
// address waits that has failed often.
//
// Start at Entry, one login's way through a Queue, and at Failures. What a session says and checks
// at its login is in package proxy.
package login
