/** Downloads reports as CSV from the service and saves them as files. */
import { ApiFault } from './api.js';
import { save } from './download.js';

/**
 * Saves a report as a CSV file.
 *
 * @param path path in the operator API, with a leading slash
 * @throws ApiFault if the service refuses the request or does not respond
 */
export async function saveCsv(path: string, query: Record<string, string>, name: string): Promise<void> {
  const asked = new URLSearchParams({ ...query, escapeFormulas: 'true' });
  const response = await fetch(`/api/operator/v1${path}?${asked}`, {
    credentials: 'same-origin',
    headers: { Accept: 'text/csv' },
  });
  const text = await response.text();
  if (!response.ok) {
    const { errorCode = '', message = response.statusText } = JSON.parse(text) as Record<string, string>;
    throw new ApiFault(response.status, errorCode, message);
  }
  save(name, text);
}
