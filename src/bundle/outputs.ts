import { relative, sep } from 'node:path'
import type { OutputFile } from 'esbuild'
import { withBuildRoot, withImportMeta } from './importMeta.ts'
import { packFile, type PackedFile } from './zip.ts'

interface Kept {
  readonly hash: string
  readonly file: PackedFile
}

/** Converts the output of the bundler into files of a build. Unchanged files are not compressed again. */
export const openOutputs = (folder: string) => {
  let kept = new Map<string, Kept>()
  return (outputs: readonly OutputFile[]): readonly PackedFile[] => {
    const next = new Map<string, Kept>()
    for (const output of outputs) {
      const path = relative(folder, output.path).replaceAll(sep, '/')
      const before = kept.get(path)
      const isSame = before?.hash === output.hash
      next.set(path, isSame ? before : { hash: output.hash, file: packFile(path, contentOf(path, output)) })
    }
    kept = next
    return [...next.values()].map(({ file }) => file)
  }
}

const contentOf = (path: string, { contents, text }: OutputFile): Uint8Array => {
  if (path.endsWith('.js')) return withBuildRoot(path, contents)
  return path.endsWith('.js.map') ? Buffer.from(smallerMap(text)) : contents
}

/** Errors show lines of the user's code; the text of dependencies would be most of the build. */
const smallerMap = (json: string): string => {
  const map = JSON.parse(json) as { readonly sources: readonly string[]; sourcesContent?: (string | null)[] }
  map.sourcesContent = (map.sourcesContent ?? []).map((content, index) =>
    content === null || map.sources[index]?.includes('node_modules/') ? null : withImportMeta(content),
  )
  return JSON.stringify(map)
}
