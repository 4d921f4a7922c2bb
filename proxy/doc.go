// Package proxy accepts clients and gives each a session: it listens, limits and drains, and keeps
// the settings of sessions.
//
// Start at Server; sessions.go has the sessions that there are, settings.go what a reload changes.
// The life of one client is in package session, which sees the Server through an interface of its
// own.
//
// A lock that stands further left is taken first: Server.pausing, session.Shared.Mu, Session.mu.
// Others guard the fields of one type for a few lines.
package proxy
