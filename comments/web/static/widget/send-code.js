var e=document.getElementById("code");history.replaceState(null,"",location.pathname);window.opener&&window.opener.postMessage({flatthread:"code",code:e.textContent},e.dataset.origin);
