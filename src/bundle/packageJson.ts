import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { messageOf } from '../errors.ts'
import { withoutBom } from '../text/withoutBom.ts'
import { BundleFailed, type BundleMessage, messageAbout } from './bundle.ts'
import { messagesOf } from './esbuildMessages.ts'

export const PACKAGE = 'package.json'

export interface Package {
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** The package.json of a folder; null if there is none. Throws `BundleFailed` with the place of what is wrong. */
export const readPackage = (folder: string): Package | null => {
  const file = join(folder, PACKAGE)
  if (!existsSync(file)) return null
  const text = withoutBom(textOf(file)) // npm ignores it too
  const fields = parsed(text)
  if (isObject(fields)) return { text, fields }
  throw new BundleFailed([messageAbout(PACKAGE, 'expected an object')])
}

const textOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new BundleFailed([messageAbout(PACKAGE, `cannot be read: ${messageOf(error)}`)])
  }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new BundleFailed([placeIn(text) ?? messageAbout(PACKAGE, messageOf(error))])
  }
}

/** Node names the place of few mistakes only. The bundler names all that it refuses, and is loaded here because it is large. */
const placeIn = (text: string): BundleMessage | undefined => {
  const { transformSync } = createRequire(import.meta.url)('esbuild') as typeof import('esbuild')
  try {
    transformSync(text, { loader: 'json', sourcefile: PACKAGE, logLevel: 'silent' })
    return undefined
  } catch (error) {
    return messagesOf(error)?.[0]
  }
}

export const isObject = (value: unknown): value is Package['fields'] =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
