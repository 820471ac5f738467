package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// nightly gives medians around 700 with a noise of 8 % a night; from the 41st
// night on they are shifted by a factor.
func nightly(random *rand.Rand, nights int, factor float64) []float64 {
	medians := make([]float64, nights)
	for i := range medians {
		medians[i] = 700 * math.Exp(0.08*random.NormFloat64())
		if i >= baselineNights {
			medians[i] *= factor
		}
	}
	return medians
}

// firstAlarm gives the number of the first night with an alarm, and which; -1: none.
func firstAlarm(nights []Night) (int, string) {
	i := slices.IndexFunc(nights, func(n Night) bool { return n.Alarm != "" })
	if i < 0 {
		return -1, ""
	}
	return i, nights[i].Alarm
}

func TestDriftQuiet(t *testing.T) {
	const runs = 4000
	random := rand.New(rand.NewPCG(1, 1))
	alarms := 0
	for range runs {
		if i, _ := firstAlarm(Drift(nightly(random, baselineNights+30, 1))); i >= 0 {
			alarms++
		}
	}
	share := float64(alarms) / runs
	t.Logf("alarms in 30 quiet nights: %.1f %%", 100*share)
	if share > 0.02 {
		t.Errorf("%.1f %% of quiet series alarm; at most 2 %% may", 100*share)
	}
	if alarms == 0 {
		t.Error("no series alarms at all: the chart is blind")
	}
}

func TestDriftIsNoticed(t *testing.T) {
	for _, shift := range []struct {
		factor float64
		alarm  string
		within int // nights, in nine of ten series
		mean   float64
	}{
		{1.2, "up", 9, 7},
		{1 / 1.2, "down", 9, 7},
		{1.5, "up", 3, 3},
	} {
		t.Run(fmt.Sprintf("×%.2f", shift.factor), func(t *testing.T) {
			const runs = 1000
			random := rand.New(rand.NewPCG(2, 1))
			var needed []int
			sum := 0
			for range runs {
				i, alarm := firstAlarm(Drift(nightly(random, baselineNights+30, shift.factor)))
				if alarm != shift.alarm {
					continue
				}
				needed = append(needed, i-baselineNights+1)
				sum += i - baselineNights + 1
			}
			if len(needed) < runs*98/100 {
				t.Fatalf("%d of %d series alarm %q", len(needed), runs, shift.alarm)
			}
			slices.Sort(needed)
			mean, most := float64(sum)/float64(len(needed)), needed[len(needed)*9/10]
			t.Logf("noticed in %.1f %% of the series, after %.1f nights on average, nine of ten within %d", 100*float64(len(needed))/runs, mean, most)
			if mean > shift.mean || most > shift.within {
				t.Errorf("after %.1f nights on average, nine of ten within %d; want %.1f and %d", mean, most, shift.mean, shift.within)
			}
		})
	}
}

func TestDriftSums(t *testing.T) {
	// The logarithms of the baseline alternate between -0.1 and 0.1.
	var medians []float64
	for i := range baselineNights {
		medians = append(medians, math.Exp(0.1-0.2*float64(i%2)))
	}
	deviation := 0.1 * math.Sqrt(40.0/39)
	up, down := math.Exp(4.1*deviation), math.Exp(-4.1*deviation)
	medians = append(medians, up, up, 1, up, up, down, down, down, down)
	want := []Night{
		{Up: 3.6}, {Up: 7.2}, {Up: 6.7}, {Up: 10.3, Alarm: "up"}, {Up: 3.6},
		{Down: 3.6}, {Down: 7.2}, {Down: 10.8, Alarm: "down"}, {Down: 3.6},
	}
	got := Drift(medians)
	for i, n := range got[:baselineNights] {
		if n != (Night{}) {
			t.Errorf("night %d of the baseline: %+v", i, n)
		}
	}
	for i, n := range got[baselineNights:] {
		if math.Abs(n.Up-want[i].Up) > 1e-9 || math.Abs(n.Down-want[i].Down) > 1e-9 || n.Alarm != want[i].Alarm {
			t.Errorf("night %d: %+v, want %+v", i, n, want[i])
		}
	}
}

func TestDriftSkipsMissingNights(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		medians := nightly(random, baselineNights+30, 1.2)
		var gapped []float64
		var kept []int
		for _, m := range medians {
			for random.IntN(3) == 0 {
				gapped = append(gapped, []float64{math.NaN(), 0, -1, math.Inf(1)}[random.IntN(4)])
			}
			kept = append(kept, len(gapped))
			gapped = append(gapped, m)
		}
		whole, got := Drift(medians), Drift(gapped)
		before := Night{}
		for i, n := range got {
			at := slices.Index(kept, i)
			switch {
			case at >= 0 && n != whole[at]:
				t.Fatalf("night %d: %+v, and %+v without gaps", i, n, whole[at])
			case at < 0 && n != before:
				t.Fatalf("missing night %d changes the sums from %+v to %+v", i, before, n)
			}
			if before = n; n.Alarm != "" {
				before = Night{}
			}
		}
	}
}

func TestDriftOfEqualNights(t *testing.T) {
	medians := slices.Repeat([]float64{60}, baselineNights+30)
	if i, alarm := firstAlarm(Drift(medians)); i >= 0 {
		t.Errorf("equal nights alarm %q on night %d", alarm, i)
	}
	for i := baselineNights; i < len(medians); i++ {
		medians[i] = 60 * 1.004
	}
	if i, alarm := firstAlarm(Drift(medians)); i >= 0 {
		t.Errorf("a change by 0.4 %% alarms %q on night %d", alarm, i)
	}
	for i := baselineNights; i < len(medians); i++ {
		medians[i] = 60 * 1.2
	}
	if i, alarm := firstAlarm(Drift(medians)); alarm != "up" {
		t.Errorf("a change by 20 %% gives alarm %q on night %d", alarm, i)
	}
	if got := Drift(medians[:baselineNights]); len(got) != baselineNights || got[baselineNights-1] != (Night{}) {
		t.Errorf("the baseline alone: %+v", got)
	}
	if got := Drift(nil); len(got) != 0 {
		t.Errorf("no nights: %+v", got)
	}
}
