import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { AppError } from '../../errors.ts'
import { swaggerUiFile } from '../../package/swaggerUi.ts'

/** The docs page is Swagger UI, served by the service: the browser loads nothing from other hosts. */

export interface Asset {
  /** Media type. */
  readonly type: string
  /** Bytes. */
  readonly size: number
  readonly etag: string
  /** Opens the file. Not called if the client has the current version. */
  readonly read: () => Readable
}

const types = {
  'index.html': 'text/html; charset=utf-8',
  'open.js': 'text/javascript; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const

type Name = keyof typeof types

/** The files of the page that are written here; the others are those of Swagger UI. */
const OURS = {
  'index.html': new URL('./page/index.html', import.meta.url),
  'open.js': new URL('./page/open.js', import.meta.url),
}

const pathOf = (name: Name): string | URL =>
  name === 'index.html' || name === 'open.js' ? OURS[name] : swaggerUiFile(name)

/** Returns a file of the page. Rejects with `not_found` for an unknown name. */
export const assetOf = async (name: string): Promise<Asset> => {
  if (!isName(name)) throw new AppError('not_found', `No file ${name} of the docs page`)
  const path = pathOf(name)
  const { size, mtimeMs } = await stat(path)
  const etag = `"${size.toString(36)}-${Math.trunc(mtimeMs).toString(36)}"`
  return { type: types[name], size, etag, read: () => createReadStream(path) }
}

const isName = (name: string): name is Name => Object.hasOwn(types, name)
