import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Bundle, BundleFailed, type BundleMessage } from '../../src/bundle/bundle.ts'
import { bundleOnce } from '../../src/bundle/bundleOnce.ts'
import { readSettings } from '../../src/bundle/settings.ts'
import type { Files } from './build.ts'
import { tempDir } from './tempDir.ts'

/** Writes the files of a project, into a new folder by default. Resolves to the folder. */
export const writeProject = (files: Files, folder: string = tempDir()): string => {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  return folder
}

/** Bundles the project of a folder. */
export const bundleOf = (folder: string): Promise<Bundle> => bundleOnce(readSettings(folder))

/** The messages of a project that cannot be bundled. */
export const refusedBundle = async (folder: string): Promise<readonly BundleMessage[]> => {
  try {
    await bundleOf(folder)
  } catch (error) {
    if (error instanceof BundleFailed) return error.messages
    throw error
  }
  throw new Error('Expected the project to be refused')
}
