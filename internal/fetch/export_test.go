package fetch

import "net/url"

// Follow says whether a redirect is followed.
func Follow(from, location string) error {
	u, err := url.Parse(from)
	if err != nil {
		return err
	}
	_, err = follow(u, location)
	return err
}
