package pool

// epochLength is how long a voter's one vote on a target counts (docs/policy.md, votes).
const epochLength = 30_000 // ms

// maxLeaseVotes bounds what exits without an identity of their own can say in an epoch.
const maxLeaseVotes = 50

func epochOf(t Time) uint32 { return uint32(t / epochLength) }

func epochEnd(epoch uint32) Time { return (Time(epoch) + 1) * epochLength }

// vote counts the first success and the first failure of a voter in this epoch: a
// target that fails in the middle of one is not hidden by what went well before.
func (s *State) vote(t *Target, p *Proxy, failed bool) {
	epoch := epochOf(s.now)
	if t.Votes.Epoch != epoch {
		t.Votes = Votes{Epoch: epoch}
	}
	if p.Spec.Exit != ExitStatic {
		if t.Votes.ByLease++; t.Votes.ByLease > maxLeaseVotes {
			return
		}
		t.Votes.count(failed)
		return
	}
	place := s.newPair(t, p.n)
	pair := &t.slab[place]
	if pair.Epoch == epoch {
		if failed && !pair.Failed { // it changed its mind: the first failure counts beside the first success
			pair.Failed = true
			t.Votes.Failed++
			s.changed.pair(t, place)
		}
		return
	}
	pair.Epoch, pair.Failed = epoch, failed
	t.Votes.count(failed)
	if pair.rests == restNone {
		s.retire(t, pair, place)
	}
	s.changed.pair(t, place)
}

// turnVote makes an ok vote of this epoch a failed one, after a note said "ban".
func (s *State) turnVote(t *Target, pair *Pair) {
	if pair.Epoch != t.Votes.Epoch || pair.Epoch != epochOf(s.now) || pair.Failed || t.Votes.OK == 0 {
		return
	}
	pair.Failed = true
	t.Votes.OK--
	t.Votes.Failed++
}

func (v *Votes) count(failed bool) {
	if failed {
		v.Failed++
	} else {
		v.OK++
	}
}
