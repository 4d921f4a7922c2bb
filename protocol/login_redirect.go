package protocol

import "bytes"

// redirectVariable is the system variable by which MariaDB since 11.3 sends clients to another
// server (https://mariadb.com/docs/server/ref/mdb/system-variables/redirect_url/).
const redirectVariable = "redirect_url"

// trackedVariable is the kind of a tracker about a system variable.
const trackedVariable = 0

// withoutRedirect removes the value of redirect_url from a server's OK to a login, as if the server
// had none: a client that followed it would leave the proxy. Other bytes are unchanged.
func withoutRedirect(ok []byte) []byte {
	if !bytes.Contains(ok, []byte(redirectVariable)) {
		return ok
	}
	head, text, rest, valid := cutText(ok)
	all, _, tracked := ReadLenEncBytes(rest)
	if !valid || !tracked {
		return ok
	}
	var trackers []byte
	for len(all) > 0 {
		of, n, valid := ReadLenEncBytes(all[1:])
		if !valid {
			return ok
		}
		if name, _, _ := ReadLenEncBytes(of); all[0] == trackedVariable && string(name) == redirectVariable {
			of = AppendLenEncBytes(AppendLenEncBytes(nil, redirectVariable), "")
		}
		trackers = AppendLenEncBytes(append(trackers, all[0]), of)
		all = all[1+n:]
	}
	return AppendLenEncBytes(AppendLenEncBytes(bytes.Clone(head), text), trackers)
}
