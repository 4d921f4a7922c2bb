package protocol

import (
	"encoding/asn1"
	"fmt"
	"strings"
)

// certificateName writes a certificate's subject or issuer, given in DER, in the one-line form that
// servers compare: "/C=SE/O=Photos/CN=app". This is OpenSSL's old form
// (https://docs.openssl.org/3.0/man3/X509_NAME_print_ex/, X509_NAME_oneline), with \xHH for
// anything but printable ASCII, and with \/ and \+ inside values. The result is "" if the name
// cannot be read.
func certificateName(der []byte) string {
	// Package asn1 takes a type for a SET if its name ends in SET.
	type attributeSET []struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	var name []attributeSET
	if rest, err := asn1.Unmarshal(der, &name); err != nil || len(rest) > 0 {
		return ""
	}
	var b strings.Builder
	for _, set := range name {
		separator := "/"
		for _, attribute := range set {
			id := attribute.Type.String()
			if short, ok := attributeNames[id]; ok {
				id = short
			}
			b.WriteString(separator + id + "=")
			separator = "+"
			for _, c := range attribute.Value.Bytes {
				switch {
				case c < ' ' || c > '~':
					fmt.Fprintf(&b, `\x%02X`, c)
					continue
				case c == '/' || c == '+':
					b.WriteByte('\\')
				}
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// attributeNames are OpenSSL's short names of the attributes in a name. Other attributes are
// written as numbers.
var attributeNames = map[string]string{
	"2.5.4.3":                    "CN",
	"2.5.4.4":                    "SN",
	"2.5.4.5":                    "serialNumber",
	"2.5.4.6":                    "C",
	"2.5.4.7":                    "L",
	"2.5.4.8":                    "ST",
	"2.5.4.9":                    "street",
	"2.5.4.10":                   "O",
	"2.5.4.11":                   "OU",
	"2.5.4.12":                   "title",
	"2.5.4.13":                   "description",
	"2.5.4.15":                   "businessCategory",
	"2.5.4.16":                   "postalAddress",
	"2.5.4.17":                   "postalCode",
	"2.5.4.18":                   "postOfficeBox",
	"2.5.4.20":                   "telephoneNumber",
	"2.5.4.41":                   "name",
	"2.5.4.42":                   "GN",
	"2.5.4.43":                   "initials",
	"2.5.4.44":                   "generationQualifier",
	"2.5.4.45":                   "x500UniqueIdentifier",
	"2.5.4.46":                   "dnQualifier",
	"2.5.4.65":                   "pseudonym",
	"2.5.4.97":                   "organizationIdentifier",
	"0.9.2342.19200300.100.1.1":  "UID",
	"0.9.2342.19200300.100.1.3":  "mail",
	"0.9.2342.19200300.100.1.25": "DC",
	"0.9.2342.19200300.100.1.44": "uid",
	"1.2.840.113549.1.9.1":       "emailAddress",
	"1.2.840.113549.1.9.2":       "unstructuredName",
	"1.2.840.113549.1.9.8":       "unstructuredAddress",
	"1.3.6.1.4.1.311.60.2.1.1":   "jurisdictionL",
	"1.3.6.1.4.1.311.60.2.1.2":   "jurisdictionST",
	"1.3.6.1.4.1.311.60.2.1.3":   "jurisdictionC",
}
