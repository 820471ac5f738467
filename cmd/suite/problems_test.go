package suite_test

import (
	"strings"
	"testing"

	"contend/cmd/suite"
)

// bad are files that are refused, with all that is told of them, each at its line
// and column. ´ stands for `. Where bySchema is set, the schema refuses them too.
var bad = []struct {
	name, text string
	bySchema   bool
	want       string
}{
	{
		"an empty file",
		"",
		true,
		`
1:1: the file is empty: a suite needs runs
`,
	},
	{
		"only a comment",
		"# nothing\n",
		true,
		`
1:1: the file is empty: a suite needs runs
`,
	},
	{
		"an empty document",
		"---\n",
		true,
		`
2:1: a suite is a mapping with runs, and with defaults if need be; there is nothing
`,
	},
	{
		"a text",
		"just text",
		true,
		`
1:1: a suite is a mapping with runs, and with defaults if need be; there is the text "just text"
`,
	},
	{
		"a list",
		"- 1",
		true,
		`
1:1: a suite is a mapping with runs, and with defaults if need be; there is a list
`,
	},
	{
		"no runs",
		"{}",
		true,
		`
1:1: runs is missing: a suite needs a list of at least one run
`,
	},
	{
		"runs of nothing",
		"runs:",
		true,
		`
1:6: runs wants a list with at least one run; there is nothing
`,
	},
	{
		"an empty list of runs",
		"runs: []",
		true,
		`
1:7: runs wants a list with at least one run; there is an empty list
`,
	},
	{
		"a mapping of runs",
		"runs: {}",
		true,
		`
1:7: runs wants a list with at least one run; there is a mapping
`,
	},
	{
		"runs that are none",
		`runs:
- ~
- text
- {}
- []
`,
		true,
		`
2:3: a run is a mapping with a scenario; there is nothing
3:3: a run is a mapping with a scenario; there is the text "text"
4:3: scenario is missing: a run needs one of fail-if-exists, version-cas, check-then-set, ttl-ghost
5:3: a run is a mapping with a scenario; there is an empty list
`,
	},
	{
		"unknown keys at the top",
		`run: []
Defaults: {}
rounds: 3
whatever: 4
`,
		true,
		`
1:1: unknown key "run": did you mean runs?
1:1: runs is missing: a suite needs a list of at least one run
2:1: unknown key "Defaults": did you mean defaults?
3:1: unknown key "rounds": a parameter goes under defaults or under a run
4:1: unknown key "whatever": a suite has defaults and runs
`,
	},
	{
		"a second document",
		`runs: [{scenario: version-cas}]
---
runs: []
`,
		false,
		`
2:1: a second document: a suite is one; put its runs under the runs of the first
`,
	},
	{
		"a second document that is broken",
		`runs: [{scenario: version-cas, bogus: 1}]
---
runs: [`,
		false,
		`
1:32: unknown key "bogus": ´contend version-cas --help´ lists the parameters
4:1: not YAML: did not find expected node content while parsing a flow node
`,
	},
	{
		"a list that does not end",
		`a: [1, 2
b`,
		false,
		`
3:1: not YAML: did not find expected ',' or ']' while parsing a flow sequence that begins at line 1, column 4
`,
	},
	{
		"a tab",
		"\truns: 1",
		false,
		`
1:1: not YAML: found character that cannot start any token while scanning for the next token
`,
	},
	{
		"an alias of nothing",
		"runs: *hunter2",
		false,
		`
1:7: an alias of YAML is not taken here: write the value out, or put it into defaults
`,
	},
	{
		"a quote that does not end",
		"é: \"",
		false,
		`
1:5: not YAML: found unexpected end of stream while scanning a quoted scalar that begins at line 1, column 4
`,
	},
	{
		"anchors, aliases, merge keys, tags, odd keys",
		`runs: &x
- &y {scenario: version-cas, bogus: 1}
- *y
- <<: {scenario: version-cas}
- !!map {scenario: version-cas}
- {scenario: !!str version-cas}
- {scenario: version-cas, rounds: [!!int 3], ? [a] : b, ? *y : c, labels: !!map {}, <<: *y}
`,
		false,
		`
1:7: an anchor of YAML is not taken here: what is meant for several runs goes into defaults
2:3: an anchor of YAML is not taken here: what is meant for several runs goes into defaults
2:30: unknown key "bogus": ´contend version-cas --help´ lists the parameters
3:3: an alias of YAML is not taken here: write the value out, or put it into defaults
4:3: a merge key of YAML is not taken here: what is meant for several runs goes into defaults
4:3: scenario is missing: a run needs one of fail-if-exists, version-cas, check-then-set, ttl-ghost
5:3: a tag of YAML is not taken here: write the value alone
6:14: a tag of YAML is not taken here: write the value alone
7:36: a tag of YAML is not taken here: write the value alone
7:48: a key has to be a name; there is a list
7:59: an alias of YAML is not taken here: write the value out, or put it into defaults
7:75: a tag of YAML is not taken here: write the value alone
7:85: a merge key of YAML is not taken here: what is meant for several runs goes into defaults
7:89: an alias of YAML is not taken here: write the value out, or put it into defaults
`,
	},
	{
		"a tag at the top",
		"!!map {runs: []}",
		false,
		`
1:1: a tag of YAML is not taken here: write the value alone
1:14: runs wants a list with at least one run; there is an empty list
`,
	},
	{
		"a tag on a list at the top",
		"!!seq [a]",
		false,
		`
1:1: a tag of YAML is not taken here: write the value alone
`,
	},
	{
		"a tag on runs and defaults",
		`defaults: !!map {}
runs: !!seq []
`,
		false,
		`
1:11: a tag of YAML is not taken here: write the value alone
2:7: a tag of YAML is not taken here: write the value alone
`,
	},
	{
		"keys that are there twice",
		`runs:
- scenario: fail-if-exists
  rounds: 1
  contenders: 2
  rounds: 2
  scenario: version-cas
  rounds: x
`,
		false,
		`
5:3: "rounds" is written twice; the first is in line 3
6:3: "scenario" is written twice; the first is in line 2
7:3: "rounds" is written twice; the first is in line 3
`,
	},
	{
		"scenarios",
		`runs:
- scenario: fail-if-exist
- scenario: nope
  bogus: 1
  rounds: 3
  keys: 1
- scenario:
- scenario: [a]
- scenario: 3
- {scenaro: version-cas}
- scenario: ''
`,
		true,
		`
2:13: unknown scenario "fail-if-exist"; there are fail-if-exists, version-cas, check-then-set, ttl-ghost: did you mean fail-if-exists?
3:13: unknown scenario "nope"; there are fail-if-exists, version-cas, check-then-set, ttl-ghost
4:3: unknown key "bogus": no scenario has such a parameter
7:12: scenario wants a text; there is nothing
8:13: scenario wants a text; there is a list
9:13: unknown scenario "3"; there are fail-if-exists, version-cas, check-then-set, ttl-ghost
10:3: scenario is missing: a run needs one of fail-if-exists, version-cas, check-then-set, ttl-ghost
10:4: unknown key "scenaro": did you mean scenario?
11:13: scenario is empty
`,
	},
	{
		"unknown keys",
		`runs:
- scenario: fail-if-exists
  contender: 1
  --rate: 1
  rtae: 1
  expected: 1
  max_uncertain: 0.5
  Rounds: 2
  ronuds: 2
  bogus: 1
  max-troubled: 1
  keys: 2
  scenarios: 1
  label: [a=b]
  bogusxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: 1
`,
		true,
		`
3:3: unknown key "contender": did you mean contenders?
4:3: unknown key "--rate": did you mean rate?
5:3: unknown key "rtae": did you mean rate?
6:3: unknown key "expected": did you mean expect?
7:3: unknown key "max_uncertain": did you mean max-uncertain?
8:3: unknown key "Rounds": did you mean rounds?
9:3: unknown key "ronuds": did you mean rounds?
10:3: unknown key "bogus": ´contend fail-if-exists --help´ lists the parameters
11:3: max-troubled is no more: use --max-uncertain
12:3: unknown key "keys": fail-if-exists has no such parameter; ttl-ghost has
13:3: unknown key "scenarios": did you mean scenario?
14:3: label is not for a suite file: write labels, a mapping such as labels: {site: test}
15:3: unknown key "bogusxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…": ´contend fail-if-exists --help´ lists the parameters
`,
	},
	{
		"flags of contend run",
		`runs:
- scenario: fail-if-exists
  output: json
  quiet: true
  dry-run: true
  no-progress: true
  no-color: true
  record: f
  store: f
  resume: f
  run: f
  help: true
`,
		true,
		`
3:3: output is not for a suite file: it is for all runs; give it to ´contend run´ itself
4:3: quiet is not for a suite file: it is for all runs; give it to ´contend run´ itself
5:3: dry-run is not for a suite file: it is for all runs; give it to ´contend run´ itself
6:3: no-progress is not for a suite file: it is for all runs; give it to ´contend run´ itself
7:3: no-color is not for a suite file: it is for all runs; give it to ´contend run´ itself
8:3: record is not for a suite file: a record holds one run; give --record to the command of the scenario
9:3: store is not for a suite file: it is for all runs; give it to ´contend run´ itself
10:3: resume is not for a suite file: ´contend nightly´ goes on with the keys of earlier nights, and ´contend ttl-ghost --resume´ with a watch
11:3: run is not for a suite file: it is no parameter of a scenario
12:3: help is not for a suite file: it is no parameter of a scenario
`,
	},
	{
		"whole numbers",
		`runs:
- scenario: fail-if-exists
  rounds: "12"
  contenders: [1, 2.5, ten, true, ~, {a: b}, [1], 0x10, 012, 1_000, 99999999999999999999, +5]
  value-size: 2026-11-30
`,
		true,
		`
3:11: rounds wants a whole number; there is the text "12": write it without quotes
4:19: contenders wants a whole number; there is the number 2.5
4:24: contenders wants a whole number; there is the text "ten"
4:29: contenders wants a whole number; there is true
4:35: contenders wants a whole number; there is nothing
4:38: contenders wants a whole number; there is a mapping
4:46: contenders wants a whole number; there is a list
4:51: contenders wants a whole number; there is the number 0x10: write it in decimal digits
4:57: contenders wants a whole number; there is the number 012: write it in decimal digits
4:62: contenders wants a whole number; there is the number 1_000: write it in decimal digits
4:69: contenders wants a whole number; there is the number 99999999999999999999: it is too large
4:91: contenders wants a whole number; there is the number +5: write it in decimal digits
5:15: value-size wants a whole number; there is the text "2026-11-30"
`,
	},
	{
		"whole numbers from 0 on",
		`runs:
- scenario: ttl-ghost
  budget: [-1, 1.5, 18446744073709551616]
`,
		true,
		`
3:12: budget wants a whole number from 0 on; there is the number -1
3:16: budget wants a whole number from 0 on; there is the number 1.5
3:21: budget wants a whole number from 0 on; there is the number 18446744073709551616: it is too large
`,
	},
	{
		"numbers",
		`runs:
- scenario: ttl-ghost
  factor: [.nan, .inf, "1.5", 0x10, 012, x, yes, 1e999, inf, nan]
`,
		true,
		`
3:12: factor wants a number; there is the number .nan
3:18: factor wants a number; there is the number .inf
3:24: factor wants a number; there is the text "1.5": write it without quotes
3:31: factor wants a number; there is the number 0x10: write it in decimal digits
3:37: factor wants a number; there is the number 012: write it in decimal digits
3:42: factor wants a number; there is the text "x"
3:45: factor wants a number; there is the text "yes"
3:50: factor wants a number; there is the text "1e999"
3:57: factor wants a number; there is the text "inf"
3:62: factor wants a number; there is the text "nan"
`,
	},
	{
		"true and false",
		`runs:
- scenario: fail-if-exists
  skip-controls: [yes, 0, "true", "off", maybe, 2]
`,
		true,
		`
3:19: skip-controls wants true or false; there is the text "yes": write true
3:24: skip-controls wants true or false; there is the number 0: write false
3:27: skip-controls wants true or false; there is the text "true": write it without quotes
3:35: skip-controls wants true or false; there is the text "off": write false
3:42: skip-controls wants true or false; there is the text "maybe"
3:49: skip-controls wants true or false; there is the number 2
`,
	},
	{
		"durations",
		`runs:
- scenario: ttl-ghost
  ttl: [10, "10", 1.5, 0, "0", 10x, true, ~, -7, 1:30, 99999999h, "", inf, 1_0s, ".s"]
`,
		true,
		`
3:9: ttl wants a duration; there is the number 10: write 10s
3:13: ttl wants a duration; there is the text "10": write 10s
3:19: ttl wants a duration; there is the number 1.5: write 1.5s
3:24: ttl wants a duration; there is the number 0: write 0s
3:27: ttl wants a duration; there is the text "0": write 0s
3:32: ttl wants a duration; there is the text "10x": write it like 10s or 1m30s
3:37: ttl wants a duration; there is true: write it like 10s or 1m30s
3:43: ttl wants a duration; there is nothing
3:46: ttl wants a duration; there is the number -7: write -7s
3:50: ttl wants a duration; there is the text "1:30": write it like 10s or 1m30s
3:56: ttl wants a duration; there is the text "99999999h": it is too long
3:67: ttl wants a duration; there is the text "": write it like 10s or 1m30s
3:71: ttl wants a duration; there is the text "inf": write it like 10s or 1m30s
3:76: ttl wants a duration; there is the text "1_0s": write it like 10s or 1m30s
3:82: ttl wants a duration; there is the text ".s": write it like 10s or 1m30s
`,
	},
	{
		"texts",
		`runs:
- scenario: fail-if-exists
  seed: [~, {}, [], [a]]
  expect: [partial, ~, {}]
  key-prefix: 
`,
		true,
		`
3:10: seed wants a text; there is nothing
3:13: seed wants a text; there is a mapping
3:17: seed wants a text; there is an empty list
3:21: seed wants a text; there is a list
4:21: expect wants a text; there is nothing
4:24: expect wants a text; there is a mapping
5:14: key-prefix wants a text; there is nothing
`,
	},
	{
		"enumerations and empty lists",
		`runs:
- scenario: fail-if-exists
  release: [gat, auto, last-byte, 1, AUTO]
  expect-verdict: broken
  rounds: []
  expect: []
  timeout: [[1s]]
`,
		true,
		`
3:13: release is one of auto, gate; there is the text "gat": did you mean gate?
3:24: release is one of auto, gate; there is the text "last-byte"
3:35: release is one of auto, gate; there is the number 1
3:38: release is one of auto, gate; there is the text "AUTO": did you mean auto?
4:19: expect-verdict is one of held, violated; there is the text "broken"
5:11: rounds has an empty list: write at least one value, or leave it out
6:11: expect has an empty list: write at least one value, or leave it out
7:13: timeout wants a duration; there is a list
`,
	},
	{
		"names",
		`runs:
- scenario: fail-if-exists
  name: ''
- {scenario: version-cas, name: '  '}
- {scenario: version-cas, name: [a]}
- {scenario: version-cas, name: ~}
- {scenario: version-cas, name: '${NAME}'}
`,
		true,
		`
3:9: name is empty
4:33: name wants one line of text
5:33: name wants a text; there is a list
6:33: name wants a text; there is nothing
7:33: ${ is only replaced in target and in the values of labels
`,
	},
	{
		"a name of two lines",
		`runs:
- scenario: fail-if-exists
  name: "a\nb"
`,
		false,
		`
3:9: name wants one line of text
`,
	},
	{
		"labels",
		`runs:
- scenario: fail-if-exists
  labels: text
- {scenario: version-cas, labels: {'a=b': c, '': d, '${NAME}': e, x: ~, y: [1], z: {a: b}, '${NO}': 1}}
`,
		true,
		`
3:11: labels wants a mapping of names to texts, such as {site: test}; there is the text "text"
4:36: label "a=b": a name has at least one character, and neither = nor ${
4:46: label "": a name has at least one character, and neither = nor ${
4:53: label "${NAME}": a name has at least one character, and neither = nor ${
4:70: label x wants a text; there is nothing
4:76: label y wants a text; there is a list
4:84: label z wants a text; there is a mapping
4:92: label "${NO}": a name has at least one character, and neither = nor ${
`,
	},
	{
		"defaults of nothing",
		`defaults: []
runs: [{scenario: version-cas}]`,
		true,
		`
1:11: defaults wants a mapping of parameters; there is an empty list
`,
	},
	{
		"defaults, some of which no run takes",
		`defaults:
  name: x
  scenario: y
  bogus: 1
  output: json
  round: 2
  keys: x
  rounds: y
  labels: 3
  page-token: hunter2
runs:
- scenario: version-cas
- scenario: fail-if-exists
`,
		true,
		`
2:3: name belongs to a run, not to defaults
3:3: scenario belongs to a run, not to defaults
4:3: unknown key "bogus": no scenario has such a parameter
5:3: output is not for a suite file: it is for all runs; give it to ´contend run´ itself
6:3: unknown key "round": did you mean rounds?
7:9: keys wants a whole number; there is the text "x"
8:11: rounds wants a whole number; there is the text "y"
9:11: labels wants a mapping of names to texts, such as {site: test}; there is the number 3
10:3: page-token names a secret, and no secret is in a suite file: it comes from the environment, in a target as ${NAME}
`,
	},
	{
		"defaults without runs",
		"defaults: {keys: x, rounds: [1, y]}",
		true,
		`
1:1: runs is missing: a suite needs a list of at least one run
1:18: keys wants a whole number; there is the text "x"
1:33: rounds wants a whole number; there is the text "y"
`,
	},
	{
		"variables",
		`runs:
- scenario: fail-if-exists
  target: ["${NO}", "${EMPTY}", "${", "a${NAME", "${a b}", "${}", ~, {}, "sim:?a=${NO}&b=${NO2}", "redis://${hunter2@h"]
  labels: {a: '${NO}', b: '${'}
`,
		false,
		`
3:12: ${NO}: NO is not set in the environment
3:21: ${EMPTY}: EMPTY is empty in the environment
3:33: ${ wants the name of a variable and }, such as ${NAME}; $${ writes ${
3:39: ${ wants the name of a variable and }, such as ${NAME}; $${ writes ${
3:50: ${ wants the name of a variable and }, such as ${NAME}; $${ writes ${
3:60: ${ wants the name of a variable and }, such as ${NAME}; $${ writes ${
3:67: target wants a text; there is nothing
3:70: target wants a text; there is a mapping
3:74: ${NO}: NO is not set in the environment
3:74: ${NO2}: NO2 is not set in the environment
3:99: ${ wants the name of a variable and }, such as ${NAME}; $${ writes ${
4:15: ${NO}: NO is not set in the environment
4:27: ${ wants the name of a variable and }, such as ${NAME}; $${ writes ${
`,
	},
	{
		"variables in other places",
		`runs:
- scenario: fail-if-exists
  name: 'a ${NAME}'
  seed: '${NAME}'
  expect: ['a${NAME}']
  timeout: '${NAME}'
  rounds: '$${NAME}'
  release: '${'
`,
		true,
		`
3:9: ${ is only replaced in target and in the values of labels
4:9: ${ is only replaced in target and in the values of labels
5:12: ${ is only replaced in target and in the values of labels
6:12: ${ is only replaced in target and in the values of labels
7:11: ${ is only replaced in target and in the values of labels
8:12: ${ is only replaced in target and in the values of labels
`,
	},
	{
		"secrets in a target",
		`runs:
- scenario: fail-if-exists
  target:
  - redis://:hunter2@h
  - redis://hunter2@h
  - redis://u:hunter2${NAME}@h
  - redis://u:${NAME}hunter2@h
  - postgres://h?sslpassword=hunter2
  - postgres://h?password=hunter2&password=${PASSWORD}
  - postgres://h?a;password=hunter2
  - forge+https://h/x1/hunter2
  - forge+https://h/${NAME}/hunter2
  - ${REDIS}:hunter2@h
  - ${REDIS}://u:hunter2@h
  - redis:hunter2
  - "redis://:hunter2/@h"
  - "redis://:hunter2%zz@h"
`,
		false,
		`
4:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
5:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
6:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
7:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
8:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
9:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
10:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
11:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
12:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
13:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
14:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
15:5: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
16:5: target is not a URL; in one, a character such as the / of a password is percent-encoded
17:5: target is not a URL; in one, a character such as the / of a password is percent-encoded
`,
	},
	{
		"a secret in the default target",
		`defaults: {target: 'redis://:hunter2@${NO}'}
runs: [{scenario: version-cas}, {scenario: fail-if-exists}]`,
		false,
		`
1:20: target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment
`,
	},
	{
		"secrets in labels",
		`runs:
- scenario: fail-if-exists
  labels: {c: '${SITE}', d: 'redis://:hunter2@h', e: 'https://h?token=hunter2', f: 'redis://:${PASSWORD}@h', g: 'forge+https://h/x1/hunter2'}
`,
		false,
		`
3:15: label c would carry a secret into every report
3:29: label d would carry a secret into every report
3:54: label e would carry a secret into every report
3:84: label f would carry a secret into every report
3:113: label g would carry a secret into every report
`,
	},
	{
		"secrets by their name",
		`runs:
- scenario: fail-if-exists
  password: hunter2
  token: hunter2
  API_SECRET: hunter2
  page-token: hunter2
- {scenario: ttl-ghost, page-token: ~}
- {scenario: ttl-ghost, fencing-token: 3}
`,
		true,
		`
3:3: "password" names a secret, and no secret is in a suite file: it comes from the environment, in a target as ${NAME}
4:3: "token" names a secret, and no secret is in a suite file: it comes from the environment, in a target as ${NAME}
5:3: "API_SECRET" names a secret, and no secret is in a suite file: it comes from the environment, in a target as ${NAME}
6:3: unknown key "page-token": fail-if-exists has no such parameter; ttl-ghost has
7:25: page-token names a secret, and no secret is in a suite file: it comes from the environment, in a target as ${NAME}
8:40: fencing-token wants true or false; there is the number 3
`,
	},
	{
		"secrets in other places",
		`runs:
- scenario: fail-if-exists
  name: redis://:hunter2@h
  seed: redis://:hunter2@h
  expect: redis://:hunter2@h
  rounds: redis://:hunter2@h
  release: redis://:hunter2@h
  bogus://u:hunter2@h: 1
  labels: redis://:hunter2@h
- redis://:hunter2@h
- scenario: redis://:hunter2@h
- {scenario: 'forge+https://h/x1/hunter2'}
`,
		true,
		`
3:9: name holds a secret, which is never in a suite file
4:9: seed holds a secret, which is never in a suite file
5:11: expect holds a secret, which is never in a suite file
6:11: rounds wants a whole number; there is the text "redis://:xxxxx@h"
7:12: release holds a secret, which is never in a suite file
8:3: unknown key "bogus://u:xxxxx@h": ´contend fail-if-exists --help´ lists the parameters
9:11: labels wants a mapping of names to texts, such as {site: test}; there is the text "redis://:xxxxx@h"
10:3: a run is a mapping with a scenario; there is the text "redis://:xxxxx@h"
11:13: scenario holds a secret, which is never in a suite file
12:14: scenario holds a secret, which is never in a suite file
`,
	},
	{
		"a secret for a suite",
		"redis://:hunter2@h",
		true,
		`
1:1: a suite is a mapping with runs, and with defaults if need be; there is the text "redis://:xxxxx@h"
`,
	},
	{
		"what the scenario refuses",
		`runs:
- scenario: fail-if-exists
  contenders: [2, 0, 0]
  rounds: 0
  duration: 1m
`,
		false,
		`
3:19: --contenders 0: at least 1 must contend
3:22: --contenders 0: at least 1 must contend
4:11: --rounds 0: at least 1 is needed
5:13: --duration and --rounds exclude each other: leave one out
`,
	},
	{
		"a default that is wrong, and taken by no run",
		`defaults: {rounds: x, value-size: y}
runs: [{scenario: version-cas, rounds: 1, value-size: 1}, {scenario: version-cas, duration: 1m, value-size: 1}]`,
		true,
		`
1:20: rounds wants a whole number; there is the text "x"
1:35: value-size wants a whole number; there is the text "y"
`,
	},
	{
		"what the scenario refuses of a parameter that is wrong already",
		"runs: [{scenario: version-cas, seed: 7, key-prefix: ~}, {scenario: version-cas, seed: 8, unguarded: true}]",
		true,
		`
1:53: key-prefix wants a text; there is nothing
1:101: --unguarded alone; is wrong
`,
	},
	{
		"a default that the scenarios refuse",
		`defaults: {rounds: 0}
runs: [{scenario: version-cas}, {scenario: fail-if-exists}]`,
		false,
		`
1:20: --rounds 0: at least 1 is needed
`,
	},
	{
		"what the scenario refuses beside other problems",
		`runs:
- {scenario: version-cas, rounds: x, duration: 1m, skip-controls: true, stagger: 1s, labels: {bad: x}, seed: 7}
- {scenario: version-cas, target: '${NO}', stagger: 1s}
- {scenario: version-cas, bogus: 1, contenders: 0}
`,
		true,
		`
2:3: whatever: one and; two
2:3: a third
2:3: a target is wanted; for --stagger
2:3: --key-prefix: the default is bad for this seed
2:35: rounds wants a whole number; there is the text "x"
2:67: --skip-controls: a fourth
2:94: --label bad=: is bad
3:35: ${NO}: NO is not set in the environment
4:27: unknown key "bogus": ´contend version-cas --help´ lists the parameters
4:49: --contenders 0: at least 1 must contend
`,
	},
}

func TestProblems(t *testing.T) {
	for _, test := range bad {
		t.Run(test.name, func(t *testing.T) {
			_, err := read(test.text)
			if err == nil {
				t.Fatal("the file is taken")
			}
			got := strings.ReplaceAll("\n"+err.Error(), "\ns.yaml:", "\n")[1:]
			if want := strings.TrimSpace(strings.ReplaceAll(test.want, "´", "`")); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if strings.Contains(got, "hunter2") {
				t.Error("the secret is told")
			}
		})
	}
}

func TestNearestIsSuggested(t *testing.T) {
	scenarios := []suite.Scenario{{Name: "a", Parameters: []suite.Parameter{{Name: "abcdxyz"}, {Name: "abcdefg"}, {Name: "abcdefh"}, {Name: "abcdexx"}}}}
	for typed, want := range map[string]string{
		"abcdefgg": ": did you mean abcdefg?",
		"abcdefi":  ": did you mean abcdefg?", // the first of equals
		"abcdehf":  ": did you mean abcdefh?",
		"abqqqyy":  ": `contend a --help` lists the parameters",
	} {
		_, err := suite.Read("f", []byte("runs: [{scenario: a, "+typed+": 1}]"), scenarios, getenv, checked)
		if want := "f:1:22: unknown key \"" + typed + "\"" + want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Files that would be long in a table.
func TestLongFiles(t *testing.T) {
	ones := strings.Repeat("1, ", 99)
	for _, test := range []struct{ name, text, want string }{
		{"not a text", "runs: 1\né: \xff", "2:4: not a text: the file has to be UTF-8, without control characters"},
		{"UTF-16", "\xff\xfer\x00", "1:1: not a text: the file has to be UTF-8, without control characters"},
		{"a control character", "runs:\r\n\t\x1b", "2:2: not a text: the file has to be UTF-8, without control characters"},
		{"too long", strings.Repeat("#", 1<<20+1), "1:1: 1048577 bytes are too many for a suite: at most 1048576 are read"},
		{"too deep", "runs: " + strings.Repeat("[", 20_000), "1:10007: not YAML: exceeded max depth of 10000 while increasing flow level"},
		{"deep", "runs: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), "1:8: a run is a mapping with a scenario; there is a list"},
		{
			"many runs", "runs:\n- {scenario: version-cas, rounds: [1, 2]}\n- {scenario: version-cas, rounds: [" + ones + "1], contenders: [0, " + ones + "]}\n- {scenario: version-cas}",
			"3:3: with this the suite makes more than 1000 runs, 10003 in all: shorten a list\ns.yaml:3:350: --contenders 0: at least 1 must contend",
		},
		{
			"more runs than a machine can count", "defaults: {rounds: [1, " + ones + "]}\nruns: [{scenario: version-cas, timeout: [1s, " + strings.Repeat("1s, ", 999) + "], contenders: [1, " + ones + ones + "], " +
				"value-size: [1, " + ones + ones + "], seed: [1, " + ones + ones + "], rate: [1, " + ones + "], key-prefix: [1, " + ones + "], max-uncertain: [1, " + ones + "], stagger: [2s, " + strings.Repeat("2s, ", 999) + "]}]",
			"2:8: with this the suite makes more than 1000 runs, 788059900000000000000 in all: shorten a list",
		},
		{"a long list", "runs: [{scenario: version-cas, rounds: [" + strings.Repeat("1,", 1001) + "]}]", "1:40: rounds has a list of 1001 values: at most 1000 are taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := read(test.text); err == nil || err.Error() != "s.yaml:"+test.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, test.want)
			}
		})
	}
	s, err := read("runs: [{scenario: version-cas, rounds: [1, " + strings.Repeat("1,", suite.MaxRuns-1) + "]}]")
	if err != nil || len(s.Runs) != suite.MaxRuns {
		t.Errorf("as many runs as there may be: %v", err)
	}
}
