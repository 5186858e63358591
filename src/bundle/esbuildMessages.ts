import type { BuildFailure, Message } from 'esbuild'
import { type BundleMessage, messageAbout } from './bundle.ts'

/** The messages of a failure of the bundler; null for any other error. */
export const messagesOf = (error: unknown): readonly BundleMessage[] | null =>
  isBuildFailure(error) ? error.errors.map(messageIn) : null

const isBuildFailure = (error: unknown): error is BuildFailure =>
  error instanceof Error && 'errors' in error && Array.isArray(error.errors)

export const messageIn = ({ text, location }: Message): BundleMessage => {
  if (!location) return messageAbout(null, text)
  const { file, line, column, lineText } = location
  // The bundler counts bytes from 0.
  const characters = Buffer.from(lineText).subarray(0, column).toString().length
  return { text, file, line, column: characters + 1, sourceLine: lineText }
}
