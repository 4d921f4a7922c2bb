package main

import (
	"regexp"

	"seqproxy/admin"
	"seqproxy/conf"
)

// shown makes an [admin.Configuration] of cfg, which is or was in force in of.
type shown struct {
	of  *reloading
	cfg *conf.Config
}

// element matches the part of a key's name that identifies an element of a list.
var element = regexp.MustCompile(`\["(?:[^"\\]|\\.)*"\]| #[0-9]+`)

// Variables returns all keys, each with its default.
func (s shown) Variables() (all []admin.Variable) {
	defaults := make(map[string]string)
	for _, k := range conf.Keys() {
		defaults[k.Name] = k.Default
	}
	for _, v := range conf.Settings(s.cfg) {
		all = append(all, admin.Variable{
			Key: v.Key, Value: v.Value, Default: defaults[element.ReplaceAllString(v.Key, "")], Counts: v.When.Words(),
		})
	}
	return all
}

// Lines returns a file with the same contents.
func (s shown) Lines() []string { return conf.Lines(s.cfg) }

// Changes reads the file.
func (s shown) Changes() (all []admin.Change, _ error) {
	if s.cfg.File() == "" {
		return nil, admin.ErrNoFile
	}
	changes, err := s.of.ConfigDiff()
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		all = append(all, admin.Change{Key: c.Key, Old: c.Old, New: c.New, Counts: c.When.Words()})
	}
	return all, nil
}

// Users returns the configured users and the users with rights.
func (s shown) Users() admin.Users {
	all := admin.Users{Admins: s.cfg.AdminUsers, Monitors: s.cfg.MonitorUsers, MaxConnections: s.cfg.MaxUserConnections}
	for i := range s.cfg.Users {
		u := &s.cfg.Users[i]
		all.Checked = append(all.Checked, admin.User{
			Name: u.Name, MaxConnections: u.MaxConnections, Sequences: u.Sequences, Schema: u.Schema, Requires: required(u),
		})
	}
	return all
}

// required lists what a user's logins need besides the password.
func required(u *conf.User) (all []string) {
	if u.RequireTLS {
		all = append(all, "TLS")
	}
	if u.NeedsCertificate() {
		all = append(all, "certificate")
	}
	if u.CertificateSubject != "" {
		all = append(all, "subject "+u.CertificateSubject)
	}
	if u.CertificateIssuer != "" {
		all = append(all, "issuer "+u.CertificateIssuer)
	}
	return all
}

// Shards returns the configured shards.
func (s shown) Shards() (all []admin.Shard) {
	for i := range s.cfg.Shards {
		shard := &s.cfg.Shards[i]
		nodes := make([]string, len(shard.Nodes))
		for j, address := range shard.Addresses() {
			nodes[j] = string(address)
		}
		all = append(all, admin.Shard{
			Name: shard.Name, Default: shard.Name == s.cfg.DefaultShard, Schemas: shard.Schemas, Nodes: nodes, User: shard.User,
		})
	}
	return all
}
