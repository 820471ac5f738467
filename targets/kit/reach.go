package kit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"contend/targets"
)

// Unreachable says what to do where a target gave no answer. where are the parts of its
// URL that lead there.
func Unreachable(a targets.Address, where string, err error) error {
	err = a.Mask(err)
	return fmt.Errorf("cannot reach %s: %s: %w", a.Masked(), whyUnreachable(where, err), err)
}

// Refuses says what to do where a target refuses us.
func Refuses(a targets.Address, hint string, err error) error {
	return fmt.Errorf("%s refuses us: %s: %w", a.Masked(), hint, a.Mask(err))
}

func whyUnreachable(where string, err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), strings.Contains(err.Error(), "too many open files"):
		return "this process may open no more files: raise its limit (ulimit -n), or lower the number of contenders"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no local port left: lower the number of contenders, or wait until old connections are gone"
	case errors.Is(err, context.Canceled):
		return "it was called off before there was an answer"
	case errors.As(err, &dns), errors.Is(err, syscall.ECONNREFUSED):
		return "is the server running, and are " + where + " right"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time: are " + where + " right, and is the server or the network overloaded"
	case isTLS(err):
		return "no TLS connection could be made: are " + where + " right, and is the server's certificate trusted here"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "it closed the connection without an answer: is it a server of this kind, does it want TLS, and are connections left"
	default:
		return "are " + where + " right"
	}
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname)
}

// NoAnswer tells an error of the connection from one of a client that could make
// nothing of an answer.
func NoAnswer(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Explain says what to do about an error outside of Do. hint words an error that the
// server sent; refused is false for any other: then there was no answer.
func Explain(ctx context.Context, a targets.Address, where string, hint func(error) (text string, refused bool), err error) error {
	if text, refused := hint(err); refused {
		return Refuses(a, text, err)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return Unreachable(a, where, err)
}

// NotTold notes that a server does not tell what it is, which a run does without. refused
// is why; nil: its answer has no version. without stands for its name.
func NotTold(s *targets.Server, a targets.Address, question, without string, refused error) {
	s.Name = without
	why := question + " reports neither"
	if refused != nil {
		why = fmt.Sprintf("%s is refused (%s)", question, Sample(a.Mask(refused).Error()))
	}
	s.Notes = append(s.Notes, "the server's name and version are unknown: "+why)
}
