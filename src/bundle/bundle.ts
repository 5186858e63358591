import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'

/** An error or a warning about the sources of a project. */
export interface BundleMessage {
  readonly text: string
  /** Relative to the folder of the project. */
  readonly file: string | null
  /** Both begin at 1. */
  readonly line: number | null
  readonly column: number | null
  readonly sourceLine: string | null
}

/** A build as the service expects it, made from the sources of a project. */
export interface Bundle {
  readonly zip: Uint8Array
  /** Hex. Equal sources give equal bytes. */
  readonly sha256: string
  /** The sources of the namespaces, relative to the folder of the project. */
  readonly modules: readonly string[]
  /** Every source and asset with its bytes in the build, the largest first. Source maps do not count. */
  readonly inputs: readonly { readonly path: string; readonly bytes: number }[]
  readonly warnings: readonly BundleMessage[]
}

/** The sources of a project cannot be bundled. */
export class BundleFailed extends AppError {
  readonly messages: readonly BundleMessage[]

  constructor(messages: readonly BundleMessage[]) {
    super('bad_request', messages.map(textOfMessage).join('\n'))
    this.messages = messages
  }
}

/** A message about no certain line. */
export const messageAbout = (file: string | null, text: string): BundleMessage => ({
  text,
  file,
  line: null,
  column: null,
  sourceLine: null,
})

/** The place and the text, and the source line with a mark below its column. */
export const textOfMessage = ({ text, file, line, column, sourceLine }: BundleMessage): string => {
  const place = [file, line, column].filter((part) => part !== null).join(':')
  const first = onOneLine(place === '' ? text : `${place}: ${text}`)
  if (sourceLine === null) return first
  const shown = onOneLine(sourceLine.replaceAll('\t', ' '))
  const mark = column === null ? '' : `\n  ${' '.repeat(column - 1)}^`
  return `${first}\n  ${shown}${mark}`
}
