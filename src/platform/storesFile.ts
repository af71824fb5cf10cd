/**
 * File in which a service with embedded stores records their addresses for the CLI and further processes. Its
 * mode is 0600.
 */
export const STORES_FILE = 'stores.json';
