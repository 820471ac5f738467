//go:build unix

package targettest

// wrongServers are real servers whose settings make them wrong.
var wrongServers = []WrongStore{}
