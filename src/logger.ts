import { pino } from 'pino'
import { clock } from './clock.ts'
import { masked, redacted } from './secrets/redaction.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Writes one line for each message, without secrets (I6). A line about a request has its `request_id`, a line about a run
 * its `run_id`.
 */
export interface Logger {
  /** Absent unless lines of this level are written, so that callers need not prepare them. */
  readonly debug?: (message: string, fields?: Fields) => void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
}

export const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof LEVELS)[number]

/** `json`: one object per line, for programs. `text`: time, level, message, then fields as JSON, for people. */
export const FORMATS = ['json', 'text'] as const
export type Format = (typeof FORMATS)[number]

interface Options {
  readonly level?: Level
  readonly format?: Format
}

/** Control characters, line separators, marks of direction, and characters without a width. */
const UNPRINTABLE = /[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/gu

/** Escapes characters that could end a line, or change how a terminal shows it. */
export const onOneLine = (text: string): string =>
  text.replace(UNPRINTABLE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** `write` receives each line with its line break. It should not wait, because every part of the service logs. */
export const openLogger = (
  write: (line: string) => void,
  { level = 'info', format = 'text' }: Options = {},
): Logger => {
  const shown = format === 'json' ? (line: string) => line : asText
  const log = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${clock.iso()}"`,
      formatters: { level: (label) => ({ level: label }), log: redacted },
    },
    { write: (line: string) => write(`${onOneLine(shown(line.trimEnd()))}\n`) }, // no transport: it would start a thread
  )
  const at =
    (name: Level) =>
    (message: string, fields: Fields = {}): void =>
      log[name](fields, masked(message))
  return {
    ...(level === 'debug' && { debug: at('debug') }),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  }
}

/** Converts a line of pino to one for people. */
const asText = (line: string): string => {
  const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const shown = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ''
  return `${String(time)} ${String(level)} ${String(msg)}${shown}`
}

export const silent: Logger = { info() {}, warn() {}, error() {} }
