/** Recognizes errors of name servers, sockets and TLS which mean that a store can't be reached. */

/** Codes of errors, or messages of errors that have no code. */
const UNREACHABLE =
  /\b(ECONN|ENET|EHOST|EAI_|EADDR|ETIMEDOUT|EPIPE|ENOTFOUND|EPROTO|EMFILE|ENFILE|ERR_SSL_|ERR_TLS_|ERR_SOCKET_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/;

/** Returns whether an error, or one of its causes, means that a store can't be reached at the moment. */
export function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, message, cause } = error as NodeJS.ErrnoException;
  if (UNREACHABLE.test(typeof code === 'string' ? code : message)) return true;
  if (error instanceof AggregateError) return error.errors.some(isUnreachable);
  return isUnreachable(cause);
}
