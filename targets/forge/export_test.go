package forge

import "crypto/x509"

// TrustHTTP has HTTP targets trust the certificates.
func TrustHTTP(roots *x509.CertPool) { httpTLS.RootCAs = roots }
