/** Views of the operators of a service. */
import { type Column, change, type Schemas } from './view.js';

export const OPERATORS: readonly Column<Schemas['Operator']>[] = [
  { heading: 'Name', value: (row) => row.name },
  { heading: 'Role', value: (row) => row.role },
  { heading: 'Begins with', value: (row) => row.prefix },
  { heading: 'Status', value: (row) => row.status, kind: 'status' },
  { heading: 'Key issued', value: (row) => row.issuedAt, kind: 'time' },
  { heading: 'Expires', value: (row) => row.expiresAt, kind: 'time' },
];

export const ROTATE_OPERATOR = change('POST /operators/{name}/rotate', {
  asks: 'Replace the key of',
  consequence: 'The present key and its sessions end at once. The new key is shown only once.',
  button: 'Rotate',
  confirm: 'Replace the key',
  done: 'The key is replaced.',
});
export const REVOKE_OPERATOR = change('DELETE /operators/{name}', {
  asks: 'Revoke',
  consequence: "The key and its sessions end at once. The name can't be used again.",
  button: 'Revoke',
  done: 'The key is revoked.',
});
