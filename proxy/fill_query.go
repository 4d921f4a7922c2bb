package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
)

// refusedQuery tells of which column an error of the kind "not supported" is.
func refusedQuery(b *plan.Binding, err error) error {
	var refused *protocol.ServerError
	if !errors.As(err, &refused) || refused.Code != mysql.ER_NOT_SUPPORTED_YET {
		return err
	}
	const prefix = len("seqproxy: ")
	return protocol.NotSupported("%s", plan.RefusedQuery(b, refused.Message[prefix:]))
}

// refusedCount is refusedQuery of an error when n is executed.
func refusedCount(n *keys.Block, err error) error {
	if n == nil || n.Key == nil || err == nil {
		return err
	}
	return refusedQuery(n.Key, err)
}
