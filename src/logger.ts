import { clock } from './clock.ts'

/** Writes one line: time, level, message, then fields as JSON. Lines never contain secrets (I6). */
export interface Logger {
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

export const openLogger = (write: (line: string) => void): Logger => {
  const level =
    (name: string) =>
    (message: string, fields?: Record<string, unknown>): void =>
      write(`${clock.iso()} ${name} ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}\n`)
  return { info: level('info'), warn: level('warn'), error: level('error') }
}

export const silent: Logger = { info() {}, warn() {}, error() {} }
