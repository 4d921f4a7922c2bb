//go:build !linux

package main

import "context"

func loadCrowd(context.Context, *target, timing, []worker) (figures, error) {
	return nil, errPlatform
}
