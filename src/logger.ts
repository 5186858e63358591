import { clock } from './clock.ts'

/** Writes one line: time, level, message, then fields as JSON. Lines never contain secrets (I6). */
export interface Logger {
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

/** The secrets whose form is known: tokens, webhook URLs, credentials in headers and in URLs of engines. */
const SECRETS: readonly RegExp[] = [
  new RegExp(`((?:svc_|s_|)${UUID}_)[A-Za-z0-9]{16,}`, 'gi'),
  /\b()(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{49}\b/g, // the secret of a token; hashes are not mixed-case
  /(\/webhook\/[^\s"?#]*\/)[A-Za-z0-9]{33}(?![A-Za-z0-9])/g,
  /(\b(?:Bearer|Basic) +)[^\s",]+/gi,
  /(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@"]*:)[^\s/@"]+(?=@)/gi,
]

const UNPRINTABLE = /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu

/** Masks the secrets whose form is known. A second net: callers do not log secrets. */
export const masked = (text: string): string =>
  SECRETS.reduce((left, secret) => left.replace(secret, '$1***'), text)

/** Escapes characters that could end a line, or change how a terminal shows it. */
export const onOneLine = (text: string): string =>
  text.replace(UNPRINTABLE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

export const openLogger = (write: (line: string) => void): Logger => {
  const level =
    (name: string) =>
    (message: string, fields?: Record<string, unknown>): void => {
      const text = `${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`
      write(`${clock.iso()} ${name} ${onOneLine(masked(text))}\n`)
    }
  return { info: level('info'), warn: level('warn'), error: level('error') }
}

export const silent: Logger = { info() {}, warn() {}, error() {} }
