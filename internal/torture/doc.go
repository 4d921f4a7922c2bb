// Package torture breaks a small installation at random and proves afterwards that no key was given twice: seqproxy processes as they are
// built, real database servers, and a network that is cut, slow or silent, with clients that take keys in all the ways there are.
//
// The parts: world.go has the servers and processes, link.go the network between them, writers.go and kinds.go the clients, nemesis.go and
// faults.go what happens to them, history.go what every client received and when. When all is healed the checks look at the history
// (check_*.go), and report.go prints one screen. run.go goes through that in order. A new fault is a function and a line in faults.go, a new way to take
// keys the same in kinds.go.
//
// The network is of our own making and not toxiproxy: that would bring sixteen modules into go.mod (a router, a metrics library, protobuf), and
// what matters most here, an answer that is swallowed while the request went through, is what it cannot do for a connection that exists.
package torture
