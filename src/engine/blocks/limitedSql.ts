/** A share of a pool of connections: work of many parts waits for the share, not for the pool, where a wait ends in an error. */

