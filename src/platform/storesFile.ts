/**
 * File in which a service with embedded stores records their addresses (mode 0600), for the CLI and further
 * processes.
 */
export const STORES_FILE = 'stores.json';
