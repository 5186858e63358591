import { mkdirSync, writeFileSync } from 'node:fs'
import { sep } from 'node:path'
import type { Image } from './cut.ts'

/** Writes the files of an image that are in one folder into another one. `isOpen`: other users may read them. */
export const materialize = (image: Image, from: string, to: string, { isOpen = false } = {}): void => {
  const [folderMode, fileMode] = isOpen ? [0o755, 0o644] : [0o700, 0o600]
  for (const [path, file] of image) {
    if (path !== from && !path.startsWith(from + sep)) continue
    const place = to + path.slice(from.length)
    if (file === null) mkdirSync(place, { recursive: true, mode: folderMode })
    else writeFileSync(place, file.bytes, { mode: fileMode })
  }
}
