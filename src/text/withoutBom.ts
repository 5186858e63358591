/** The text of a file without the byte order mark that some editors of Windows write before it. */
export const withoutBom = (text: string): string => text.replace(/^\uFEFF/, '')
