package scenarios

import "testing"

func TestBackoff(t *testing.T) {
	if backoff("none", 5, 1) != 0 || backoff("exponential", 1, 0) != backoffBase || backoff("exponential", 40, 0) != backoffMost {
		t.Error("the wait is not as documented")
	}
	if d := backoff("jitter", 3, 0.5); d != 2*backoffBase {
		t.Errorf("jitter of one half: %s", d)
	}
}
