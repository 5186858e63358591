import type { BuildFailure, Message } from 'esbuild'
import { type BundleMessage, messageAbout } from './bundle.ts'
import { importAdvice } from './importAdvice.ts'

/** The messages of a failure of the bundler; null for any other error. `folder`: where imports are resolved. */
export const messagesOf = (error: unknown, folder: string | null = null): readonly BundleMessage[] | null =>
  isBuildFailure(error) ? error.errors.map((message) => messageIn(message, folder)) : null

const isBuildFailure = (error: unknown): error is BuildFailure =>
  error instanceof Error && 'errors' in error && Array.isArray(error.errors)

export const messageIn = ({ text, location }: Message, folder: string | null): BundleMessage => {
  if (!location) return messageAbout(null, text)
  const { file, line, column, lineText, suggestion } = location
  const [, specifier] = /^Could not resolve "(.*)"$/.exec(text) ?? []
  const advice =
    specifier === undefined || folder === null
      ? suggested(suggestion, text)
      : importAdvice(specifier, file, folder)
  // The bundler counts bytes from 0.
  const characters = Buffer.from(lineText).subarray(0, column).toString().length
  return {
    text: advice === null ? text : `${text}; ${advice}`,
    file,
    line,
    column: characters + 1,
    sourceLine: lineText,
  }
}

/** The suggestion of the bundler, unless the message names it already. */
const suggested = (name: string, text: string): string | null =>
  name === '' || text.includes(`"${name}"`) ? null : `did you mean "${name}"?`
