package report

import (
	"encoding/json"
	"testing"
	"time"

	"contend/targets"
)

// What the server tells is added to what the URL alone describes; a list that is empty
// stays one.
func TestTargetIsToldByItsServer(t *testing.T) {
	target := TargetOf(targets.Description{Kind: "k", Server: "a store", Strategies: map[string]string{"create": "nx", "delete": "lua", "renew": "lua"}})
	target.Told(targets.Server{})
	b, err := json.Marshal(target)
	if want := `{"kind":"k","url":"","strategy":{"create":"nx"},"simulated":false,"server":"a store","notes":[],"sent_by":"","one_copy":false,"relayed":false}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v\nwant %s", b, err, want)
	}
	target.Told(targets.Server{Name: "Store 2", Simulated: true, Notes: []string{"n"}, Uncertainty: time.Second})
	if target.Server != "Store 2" || !target.Simulated || len(target.Notes) != 1 || target.Uncertainty != time.Second {
		t.Errorf("got %+v", target)
	}
	target = TargetOf(targets.Description{})
	target.Told(targets.Server{})
	if target.Server != "version not reported" {
		t.Errorf("a server that nobody names is %q", target.Server)
	}
}
