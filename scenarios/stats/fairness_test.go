package stats

import (
	"math/rand/v2"
	"testing"
)

// raceShares draws the successes of a round in which the contenders need so many
// each, until the first has them: weights say how often each succeeds.
func raceShares(random *rand.Rand, times int, weights []float64) []int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	shares := make([]int, len(weights))
	for {
		at := random.Float64() * sum
		for i, w := range weights {
			if at -= w; at < 0 {
				if shares[i]++; shares[i] == times {
					return shares
				}
				break
			}
		}
	}
}

// Alike contenders are called uneven as often as the level says, though those of a
// round depend on each other, and uneven ones are found.
func TestFairness(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	below := func(weights []float64) (n int) {
		for range 200 {
			var rounds [][]int
			for range 20 {
				rounds = append(rounds, raceShares(random, 3, weights))
			}
			if p := FairnessOf(rounds).P; *p < 0.05 {
				n++
			}
		}
		return n
	}
	even := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	// 200 × 0.05 = 10 are expected; 20 or more have a probability below 0.3 %.
	if n := below(even); n >= 20 {
		t.Errorf("%d of 200 runs of alike contenders have p < 5 %%", n)
	}
	uneven := append([]float64{3}, even[1:]...)
	if n := below(uneven); n < 190 {
		t.Errorf("%d of 200 runs with one contender three times as lucky have p < 5 %%", n)
	}
}

func TestFairnessNeedsContendersAndRounds(t *testing.T) {
	if FairnessOf([][]int{{5}}) != nil || FairnessOf([][]int{{0, 0}}) != nil {
		t.Error("one contender, or no success, has a fairness")
	}
	if f := FairnessOf([][]int{{3, 1}, {3, 1}}); f.P != nil || f.Least != 0.25 || f.Most != 0.75 || f.Even != 0.5 {
		t.Errorf("two rounds: %+v", f)
	}
}
