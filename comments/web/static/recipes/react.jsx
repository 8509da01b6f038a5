import Script from "next/script";

export function Comments({ thread }) {
  return (
    <>
      <Script type="module" src="https://comments.example/widget/flatthread.js" />
      <div
        key={thread}
        id="flatthread"
        data-site="blog"
        data-thread={thread}
        suppressHydrationWarning
      />
    </>
  );
}
