package stats

import (
	"math/rand/v2"
	"slices"
)

// Fairness compares the contenders by their successes until the first of them was
// done, over all rounds.
type Fairness struct {
	Least float64 `json:"least"` // share of the one that succeeded least
	Most  float64 `json:"most"`
	Even  float64 `json:"even"` // what each would have
	// P is the probability of shares as uneven as these, or more, where the contenders
	// of a round are alike: by permuting them within the rounds, since the successes of
	// a round depend on each other. nil: too few rounds.
	P *float64 `json:"p,omitempty"`
}

const (
	// fewestPermuted rounds can show a difference at all.
	fewestPermuted = 5
	// permutations that are drawn.
	permutations = 2000
)

// FairnessOf takes the successes of each contender, round by round.
func FairnessOf(rounds [][]int) *Fairness {
	contenders, all := 0, 0
	for _, shares := range rounds {
		contenders = max(contenders, len(shares))
	}
	totals := totalsOf(rounds, contenders)
	for _, n := range totals {
		all += n
	}
	if contenders < 2 || all == 0 {
		return nil
	}
	f := &Fairness{Least: float64(slices.Min(totals)) / float64(all), Most: float64(slices.Max(totals)) / float64(all), Even: 1 / float64(contenders)}
	if len(rounds) >= fewestPermuted {
		p := permuted(rounds, contenders)
		f.P = &p
	}
	return f
}

func totalsOf(rounds [][]int, contenders int) []int {
	totals := make([]int, contenders)
	for _, shares := range rounds {
		for i, n := range shares {
			totals[i] += n
		}
	}
	return totals
}

// unevenness is what the totals are compared by: the sum of their squares.
func unevenness(totals []int) (sum int) {
	for _, n := range totals {
		sum += n * n
	}
	return sum
}

// permuted gives the share of permutations within the rounds whose totals are as
// uneven as those that were seen, those themselves counted.
func permuted(rounds [][]int, contenders int) float64 {
	seen, asUneven := unevenness(totalsOf(rounds, contenders)), 1
	random := rand.New(rand.NewPCG(1, 2))
	mixed := make([][]int, len(rounds))
	for i, shares := range rounds {
		mixed[i] = make([]int, contenders)
		copy(mixed[i], shares)
	}
	for range permutations {
		for _, shares := range mixed {
			random.Shuffle(contenders, func(i, j int) { shares[i], shares[j] = shares[j], shares[i] })
		}
		if unevenness(totalsOf(mixed, contenders)) >= seen {
			asUneven++
		}
	}
	return float64(asUneven) / (permutations + 1)
}
