// Package settings reads a configuration from the environment, checks it, completes it with
// defaults and describes it, all by the tags of its fields:
//
//	env      the environment variable
//	default  the value that the zero value selects, or when which value is selected
//	choices  the allowed words, separated by commas
//	range    the smallest and the greatest number, such as "10ms.." or "1..64". Without
//	         the tag a number must be positive. 0 is always allowed: it selects the default.
//
// So a setting is one field, and the file that uses it.
package settings
