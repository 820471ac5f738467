package quota_test

import (
	"testing"
	"time"

	"contend/cmd/quota"
	"contend/targets"
)

// A run keeps to 90 % of what is documented; a rate stands in for what is allowed in
// a second, and for nothing longer.
func TestLimits(t *testing.T) {
	d := targets.Description{Limits: []targets.Limit{{Requests: 1000, Per: time.Second}, {Requests: 4000, Per: time.Minute}}}
	for rate, want := range map[float64]string{
		0:    "900 requests in 1s and 3600 requests in 1m0s",
		50:   "3600 requests in 1m0s and 50 requests in 1s",
		1001: "3600 requests in 1m0s and 1001 requests in 1s",
	} {
		if got := quota.Text(quota.Limits(d, rate, 64)); got != want {
			t.Errorf("--rate %g: %s, want %s", rate, got, want)
		}
		if above := quota.Above(d, rate); (above != "") != (rate > 1000) {
			t.Errorf("--rate %g: %q", rate, above)
		}
	}
	if d.Limits[0].Requests != 1000 {
		t.Error("the description was changed")
	}
	if got := quota.Limits(targets.Description{}, 0, 64); len(got) != 0 {
		t.Errorf("without a quota: %v", got)
	}
}
