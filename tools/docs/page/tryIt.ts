/**
 * "Try it": sends an operation to the service that the page came from, with a sandbox key that exists only in
 * this page's memory.
 */

interface Tried {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly body?: string;
}

/** The key is neither stored nor shown again. It is lost when the page is closed. */
let key = '';
/** The key that was verified to belong to a sandbox account. */
let sandboxKey: string | undefined;
const keyFields: HTMLInputElement[] = [];

const SANDBOX_ONLY = '/api/partner/v1/sandbox/next-outcome';
const SHOWN_HEADERS = [
  'x-request-id',
  'idempotent-replayed',
  'retry-after',
  'x-ratelimit-remaining',
  'content-type',
];

class NotTried extends Error {}

/**
 * Checks that the key belongs to a sandbox account. For this, it sends a choice of the next outcome with an
 * empty body, which changes nothing. A sandbox account gets an error about the body. For a production account
 * the path does not exist.
 */
async function isSandbox(): Promise<void> {
  if (sandboxKey === key) return;
  const response = await fetch(SANDBOX_ONLY, { method: 'POST', headers: { 'X-API-Key': key }, body: '{}' });
  const { errorCode, message } = (await response.json()) as { errorCode: string; message: string };
  if (errorCode === 'KS-4215') {
    key = '';
    for (const field of keyFields) field.value = '';
    throw new NotTried('Nothing was sent, because this is a production key. Use a sandbox key.');
  }
  if (errorCode !== 'KS-4102' && errorCode !== 'KS-4101') throw new NotTried(`${errorCode}: ${message}`);
  sandboxKey = key;
}

function labelled(text: string, field: HTMLElement): HTMLLabelElement {
  const label = document.createElement('label');
  label.append(text, field);
  return label;
}

function fieldOf(name: string, isRequired: boolean): HTMLInputElement {
  const field = document.createElement('input');
  field.name = name;
  field.required = isRequired;
  field.autocomplete = 'off';
  return field;
}

function formOf({ method, path, parameters, body }: Tried, name: string): HTMLFormElement {
  const form = document.createElement('form');
  form.className = 'try';
  form.setAttribute('aria-label', `Try ${name}`);
  const keyField = fieldOf('key', true);
  keyField.type = 'password';
  keyField.value = key;
  keyFields.push(keyField);
  keyField.addEventListener('input', () => {
    key = keyField.value.trim();
    for (const other of keyFields) if (other !== keyField) other.value = keyField.value;
  });
  const fields = parameters.map((parameter) => ({
    ...parameter,
    field: fieldOf(parameter.name, parameter.required),
  }));
  const text = document.createElement('textarea');
  text.value = body ?? '';
  text.rows = Math.min(16, text.value.split('\n').length + 1);
  text.spellcheck = false;
  const send = document.createElement('button');
  send.textContent = `Send ${method}`;
  const answer = document.createElement('pre');
  answer.tabIndex = 0;
  answer.setAttribute('role', 'status');
  answer.setAttribute('aria-label', 'Answer');
  answer.hidden = true;
  form.append(labelled('Sandbox key (stays in the memory of this page)', keyField));
  for (const { name: label, in: place, field } of fields) form.append(labelled(`${label} (${place})`, field));
  if (body !== undefined) form.append(labelled('Body', text));
  form.append(send, answer);

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    send.disabled = true;
    let target = path;
    const query = new URLSearchParams();
    for (const { name: label, in: place, field } of fields) {
      if (place === 'path') target = target.replace(`{${label}}`, encodeURIComponent(field.value));
      else if (field.value !== '') query.set(label, field.value);
    }
    try {
      await isSandbox();
      answer.textContent = await sent(
        method,
        query.size === 0 ? target : `${target}?${query}`,
        body && text.value,
      );
    } catch (error) {
      answer.textContent =
        error instanceof NotTried ? error.message : `No answer: ${(error as Error).message}`;
    }
    answer.hidden = false;
    send.disabled = false;
  });
  return form;
}

/** Sends a request. Returns the response as text: status, some headers and body. */
async function sent(method: string, path: string, body: string | undefined): Promise<string> {
  const headers = { 'X-API-Key': key, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) };
  const beganMs = performance.now();
  const response = await fetch(path, { method, headers, ...(body === undefined ? {} : { body }) });
  const text = await response.text();
  const tookMs = Math.round(performance.now() - beganMs);
  const shown = SHOWN_HEADERS.filter((name) => response.headers.has(name)).map(
    (name) => `${name}: ${response.headers.get(name)}`,
  );
  return [`${response.status} in ${tookMs} ms`, ...shown, '', pretty(text)].join('\n');
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function openTries(): void {
  for (const section of document.querySelectorAll<HTMLElement>('[data-try]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Try it';
    const name = section.getAttribute('aria-labelledby')!;
    button.setAttribute('aria-label', `Try it: ${name}`);
    button.addEventListener('click', () => {
      const form = formOf(JSON.parse(section.dataset.try!) as Tried, name);
      button.replaceWith(form);
      form.querySelector('input')!.focus();
    });
    // The "Try it" button is placed below the code samples.
    section.querySelector('.tabs')!.after(button);
  }
}
