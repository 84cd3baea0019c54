package engine

// RevokeAll revokes the communicators of this rank, except the one whose collectives have the
// given context: a rank that leaves its computation because of a failure cannot know which
// of its communicators others wait on.
func (r *Engine) RevokeAll(except uint32) {
	e := r.lock()
	defer e.unlock()
	if e.failed != nil {
		return
	}
	for ctx, m := range e.ft.members {
		if ctx != except && m.comm.Size > 1 {
			e.revoke(m, &RevokedError{int(m.comm.Rank)})
		}
	}
	e.settle()
}
