package config

//go:generate go run ../docgen
