/** Reports as the service writes them as CSV, kept as a file by the browser. */
import { ApiFault } from './api.js';
import { save } from './download.js';

/** @param path of the operator API, with a leading slash. @throws ApiFault */
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
